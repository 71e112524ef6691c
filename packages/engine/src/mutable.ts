/** While it is being built: V8 sets fields one by one faster than it spreads each where it is needed. */
export type Mutable<T> = { -readonly [K in keyof T]: T[K] };
