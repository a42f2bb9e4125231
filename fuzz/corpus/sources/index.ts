export * from './memory';
export type Listener = (name: unknown) => void;

export interface Store {
  save(name: string, price: unknown): Promise<void>;
  watch(listener: Listener): void;
}

export enum Kind {
  Memory,
  Disk = 'disk',
}
