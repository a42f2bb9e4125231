package org.example.shop.store;

import org.example.shop.Money;

public final class Stores {
    private Stores() {}

    public static Store openStore(String name) {
        return new Store() {
            @Override
            public Money findPrice(String item) {
                int cents = item.length() * 100;
                Money price = Money.ofCents(cents, "EUR");
                return price;
            }

            @Override
            public void note(String item, Money price) {}
        };
    }
}
