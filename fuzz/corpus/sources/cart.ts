import { readFileSync } from 'fs';
import parseMoney, { Money, ofCents as cents } from './money';
import * as stores from './store';
import { Store, type Listener } from './store/index.js';

declare function log(text: string): void;

type Handler<T> = (event: T) => void;

@sealed
export class Cart<T extends { name: string }> implements Iterable<T> {
  #items: T[] = [];
  private store: Store | null = stores.open('main');
  private handlers = new Map<string, Handler<T>>();

  @logged({ level: 'debug' })
  async add(item: T, price?: Money): Promise<void> {
    this.#items.push(item);
    const known = price ?? cents(0);
    await this.store?.save(
      item.name,
      known.plus(parseMoney('1 EUR')),
    );
  }

  onAdd = (handler: Handler<T>): void => {
    this.handlers.set('add', handler);
    this.store!.watch(handler as Listener);
    log(`added ${this.#items.length}`);
  };

  get size(): number {
    return this.#items.length;
  }

  *[Symbol.iterator]() {
    yield* this.#items;
  }
}

export namespace Carts {
  export function empty<T extends { name: string }>() {
    return new Cart<T>();
  }
}

export function readCart(path: string): Cart<{ name: string }> {
  const cart = new Cart<{ name: string }>();
  JSON.parse(readFileSync(path, 'utf8')).forEach((item: { name: string }) => {
    void cart.add(item);
  });
  return cart;
}
