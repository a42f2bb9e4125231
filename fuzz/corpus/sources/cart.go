package shop

import (
	"fmt"
	"sort"

	cash "example.org/shop/money"
	"example.org/shop/store"
)

// Line is one thing in a cart.
type Line struct {
	Name  string
	Price cash.Money
}

/*
Cart sums up its lines.
*/
type Cart struct {
	Basket
	lines []Line
	store *store.Store
}

func NewCart() *Cart {
	return &Cart{store: store.Open()}
}

// Total is the sum of all lines.
func (c *Cart) Total() (cash.Money, error) {
	sum := cash.Money{Currency: "EUR"}
	for _, line := range c.lines {
		var err error
		sum, err = sum.Plus(line.Price)
		if err != nil {
			return sum, err
		}
	}
	return sum, nil
}

func (c *Cart) Put(names ...string) {
	sort.Strings(names)
	for _, name := range names {
		price, ok := c.store.FindPrice(name)
		if !ok {
			price = cash.OfCents(
				0,
				"EUR",
			)
		}
		c.lines = append(c.lines, Line{name, price})
	}
	c.weigh(len(names))
	trace(fmt.Sprint(names))
	c.store.Notify("put")
	store.Default.FindPrice("nothing")
}
