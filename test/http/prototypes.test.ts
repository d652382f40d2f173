import { describe, expect, test } from 'bun:test'
import { type Random, randomNumbers } from '../support/random.ts'
import { differences, snapshotPrototypes } from './support/prototypes.ts'
import { type RequestOptions, type Service, startService } from './support/service.ts'
import { IN_PROCESS } from './support/transports.ts'

const REQUESTS = 1500
const SEED = 20_260

/** Names by which a request could reach a prototype. */
const NAMES = ['__proto__', 'constructor', 'prototype', 'toString', '__defineGetter__', 'valueOf', 'hasOwnProperty']
const VALUES = ['{"polluted":1}', '{"prototype":{"polluted":1}}', '{"__proto__":{"polluted":1}}', 'null', '"x"', '[1]']
const METHODS = ['GET', 'POST', 'DELETE', 'PUT', 'OPTIONS', 'HEAD']

const one = (random: Random, choices: readonly string[]): string => choices[random(choices.length)] ?? ''

/** A body that reaches for prototypes. */
function body(random: Random, id: number): string {
  const name = one(random, NAMES)
  const value = one(random, VALUES)
  return one(random, [
    `{"id":${id},"name":"Fern","${name}":${value}}`,
    `{"${name}":${value},"id":${id}.0,"name":"Fern"}`,
    `{"id":${id},"name":"Fern","x":{"${name}":${value}},"${name}":{"${one(random, NAMES)}":${value}}}`,
    `{"id":${value},"name":${value},"tag":{"${name}":${value}}}`,
    `[{"${name}":${value}}]`,
    `{"${name}":${value}`,
  ])
}

/** A request with such names in its path, query, headers and body. Most requests are to the API. */
function request(random: Random, id: number): [method: string, path: string, options: RequestOptions] {
  const name = one(random, NAMES)
  const target = one(random, [
    '/plants',
    '/plants',
    `/plants?limit=3&${name}[polluted]=1`,
    `/plants?limit=1&${name}.polluted=1&${name}=1`,
    `/plants?limit=${name}&after=${name}`,
    `/plants/${id}`,
    `/plants/${name}`,
    `/${name}`,
    `/${name}/${name}`,
  ])
  const headers = { 'content-type': 'application/json', [name]: 'polluted', cookie: `${name}[polluted]=1` }
  const method = one(random, target === '/plants' ? ['POST', 'POST', 'POST', 'GET'] : METHODS)
  const hasBody = method === 'POST' || method === 'PUT'
  return [method, target, { headers, ...(hasBody && { body: body(random, id) }) }]
}

async function fuzz(service: Service): Promise<Record<number, number>> {
  const random = randomNumbers(SEED)
  const statuses: Record<number, number> = {}
  for (let count = 0; count < REQUESTS; count++) {
    const { status } = await service.request(...request(random, random(REQUESTS)))
    statuses[status] = (statuses[status] ?? 0) + 1
  }
  return statuses
}

// A test sees the prototypes of its own process only.
describe.each(IN_PROCESS)('prototypes and globals, $name', (transport) => {
  test('stay the same after requests of every kind that reach for them', async () => {
    await using service = await startService(transport)
    // The first request compiles routes.
    await service.create({ id: 0, name: 'Fern' })
    const before = snapshotPrototypes()

    const statuses = await fuzz(service)

    expect(differences(before, snapshotPrototypes())).toEqual([])
    for (const status of [200, 204, 400, 404, 405, 409])
      expect([status, statuses[status]]).toEqual([status, expect.any(Number)])
    expect(statuses[500]).toBeUndefined()
  })
})

describe('snapshotPrototypes', () => {
  test.each<[what: string, change: () => () => void, difference: string]>([
    ['a new property', () => add(Object.prototype, 'polluted'), 'Object.prototype polluted'],
    ['a new method', () => add(Array.prototype, 'polluted'), 'Array.prototype polluted'],
    ['another method', () => replace(Date.prototype, 'toUTCString'), 'Date.prototype toUTCString'],
    ['another function', () => replace(Math, 'sinh'), 'Math sinh'],
  ])('shows %s', (_, change, difference) => {
    const before = snapshotPrototypes()
    const undo = change()
    const after = snapshotPrototypes()
    undo()

    expect(differences(before, after)).toEqual([difference])
    expect(differences(before, snapshotPrototypes())).toEqual([])
  })
})

/** Each returns what undoes it. */
function add(object: object, name: string): () => void {
  Object.defineProperty(object, name, { value: 1, configurable: true, enumerable: false })
  return () => void Reflect.deleteProperty(object, name)
}

function replace(object: object, name: string): () => void {
  const descriptor = Object.getOwnPropertyDescriptor(object, name) ?? {}
  const original: CallableFunction = descriptor.value
  Object.defineProperty(object, name, { ...descriptor, value: original.bind(undefined) })
  return () => void Object.defineProperty(object, name, descriptor)
}
