// Package money adds and parses amounts.
package money

import (
	"errors"
	"fmt"
)

// Adder is anything that amounts can be added to.
type Adder interface {
	Plus(other Money) (Money, error)
}

// Money is an amount in the smallest unit of its currency.
type Money struct {
	Cents    int64
	Currency string
}

// OfCents makes an amount.
func OfCents(cents int64, currency string) Money {
	return Money{Cents: cents, Currency: currency}
}

// Plus adds an amount of the same currency.
func (m Money) Plus(other Money) (Money, error) {
	// Amounts of two currencies have no sum.
	if m.Currency != other.Currency {
		return Money{}, errors.New("two currencies")
	}
	return OfCents(m.Cents+other.Cents, m.Currency), nil
}

// Parse reads what String writes.
func Parse(text string) Money {
	panic("not implemented")
}

func (m Money) String() string { return fmt.Sprint(m.Cents, m.Currency) }
