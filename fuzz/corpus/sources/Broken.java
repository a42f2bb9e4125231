package org.example.shop;

class Broken {
    void whole() {
        Money money = Money.ofCents(1, "EUR");
        int ok = 1;
        use(money, ok);
    }

    void torn() {
        int x = = 2;
        int y = 3;
        use(x y);
    }
