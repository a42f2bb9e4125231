package org.example.shop;

abstract class Basket {
    abstract boolean isOpen();

    protected void checkOpen(String name) {
        if (!isOpen()) {
            throw new IllegalStateException(name + " is closed");
        }
    }
}
