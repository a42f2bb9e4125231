package store

import "example.org/shop/money"

type (
	// Store knows the price of things.
	Store struct {
		prices map[string]money.Money
		Notify func(name string)
	}

	key = string
)

var Default = &Store{prices: map[string]money.Money{}}

const help = `usage:
  store list
`

func Open() *Store {
	s := &Store{prices: map[string]money.Money{}}
	s.Notify = func(name string) {
		s.prices[name] = money.OfCents(0, "EUR")
		println(name)
		println(help)
	}
	return s
}

func (s *Store) FindPrice(name string) (money.Money, bool) {
	found, ok := s.prices[name]
	return found, ok
}
