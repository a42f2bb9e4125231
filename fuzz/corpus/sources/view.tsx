import React, { useState } from 'react';
import { Cart, readCart } from './cart';

interface Props {
  path: string;
}

export const CartView: React.FC<Props> = ({ path }) => {
  const [cart] = useState(() => readCart(path));
  const label = <T,>(value: T) => String(value);
  return (
    <section className="cart">
      {/* how many */}
      <h1>
        In your cart
      </h1>
      <Count of={cart} />
      {label(cart.size)}
    </section>
  );
};

function Count({ of }: { of: Cart<any> }) {
  const size = of.size;
  const text = size === 1 ? 'one' : `${size}`;
  return <b>{text}</b>;
}
