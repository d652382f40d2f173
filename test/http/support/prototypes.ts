/** The prototypes that all objects of a realm have in common, and what makes them. */
const SHARED: Readonly<Record<string, object>> = {
  Object,
  Function,
  Array,
  String,
  Number,
  Boolean,
  BigInt,
  Symbol,
  Date,
  RegExp,
  Map,
  Set,
  WeakMap,
  Promise,
  Error,
  TypeError,
  Uint8Array,
  ArrayBuffer,
  URL,
  URLSearchParams,
  Headers,
  Request,
  Response,
  TextDecoder,
}
const OTHERS: Readonly<Record<string, object>> = { JSON, Math, Reflect, Atomics, globalThis }

type Snapshot = ReadonlyMap<string, ReadonlyMap<PropertyKey, PropertyDescriptor>>

/** What the shared objects have now: each property of theirs. */
export function snapshotPrototypes(): Snapshot {
  const objects = { ...OTHERS }
  for (const [name, made] of Object.entries(SHARED)) {
    objects[name] = made
    objects[`${name}.prototype`] = Reflect.get(made, 'prototype')
  }
  return new Map(Object.entries(objects).map(([name, object]) => [name, propertiesOf(object)]))
}

const propertiesOf = (object: object) =>
  new Map(
    Reflect.ownKeys(object).flatMap((key): [PropertyKey, PropertyDescriptor][] => {
      const descriptor = Object.getOwnPropertyDescriptor(object, key)
      return descriptor === undefined ? [] : [[key, descriptor]]
    }),
  )

/** The properties that are there in one snapshot alone, or are not the same in both. */
export function differences(before: Snapshot, after: Snapshot): string[] {
  return [...before].flatMap(([name, properties]) => {
    const now = after.get(name) ?? new Map<PropertyKey, PropertyDescriptor>()
    const keys = new Set([...properties.keys(), ...now.keys()])
    return [...keys].filter((key) => !isSame(properties.get(key), now.get(key))).map((key) => `${name} ${String(key)}`)
  })
}

const isSame = (one: PropertyDescriptor | undefined, other: PropertyDescriptor | undefined): boolean =>
  one !== undefined &&
  other !== undefined &&
  (['value', 'get', 'set', 'writable', 'enumerable', 'configurable'] as const).every((part) =>
    Object.is(one[part], other[part]),
  )
