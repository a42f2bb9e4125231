package org.example.shop;

import java.math.BigDecimal;
import java.util.Objects;

/**
 * An amount in one currency; {@code // not a comment of its own}.
 */
public record Money(BigDecimal amount, String currency) implements Comparable<Money> {
    public static final Money NOTHING = new Money(BigDecimal.ZERO, "EUR");

    public Money {
        Objects.requireNonNull(amount);
        Objects.requireNonNull(currency);
        if (currency.length() != 3) {
            throw new IllegalArgumentException(currency);
        }
    }

    public static Money ofCents(long cents, String currency) {
        // Two digits behind the point.
        BigDecimal amount = BigDecimal.valueOf(cents, 2);

        return new Money(amount, currency);
        // Nothing more.
    }

    public Money plusOther(Money other) { return new Money(amount.add(other.amount), currency); }

    @Override
    public int compareTo(Money other) {
        throw new UnsupportedOperationException(
            "Amounts of different currencies "
                + "cannot be compared yet");
    }
}
