package shop

// Basket carries a weight.
type Basket struct {
	weight int
}

func (b *Basket) weigh(count int) {
	b.weight += count
	if b.weight > 10 {
		trace("heavy")
	}
}

func trace(text string) {
	for range 3 {
		println(text)
	}
}
