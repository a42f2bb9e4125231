package org.example.shop.store;

import org.example.shop.Money;

public interface Store {
    Money findPrice(String name);

    void note(String name, Money price);
}
