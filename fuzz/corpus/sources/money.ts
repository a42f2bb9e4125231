/** An amount in one currency. */
export class Money {
  static readonly nothing = new Money(0);

  constructor(
    readonly cents: number,
    readonly currency: string = 'EUR',
  ) {
    if (cents % 1 !== 0) {
      throw new RangeError(`${cents} is no
        whole number`);
    }
  }

  plus(other: Money): Money {
    return new Money(this.cents + other.cents);
  }
}

export const ofCents = (cents: number): Money => new Money(cents);

export default function parse(text: string): Money {
  // '1.50 EUR'
  const [amount, currency] = text.split(' ');

  return new Money(Math.round(parseFloat(amount) * 100), currency);
}

export function later(): Money {
  throw new Error('not implemented');
}
