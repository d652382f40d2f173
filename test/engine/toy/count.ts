import { writeSync } from 'node:fs'
import { openEngine } from '../../../src/engine/sqlite/open.ts'
import { COUNTERS, COUNTERS_FORMAT, type CounterWrites } from './counters.ts'

/** Raises the counters of three owners in turn, at the path of its argument, and prints each owner once that is acknowledged. */
const OWNERS = 3
const { writer, versions } = await openEngine<CounterWrites>(COUNTERS, COUNTERS_FORMAT, Bun.argv[2] ?? '', fail, {
  durability: 'full',
  settings: undefined,
  startThread: () => new Worker(new URL('./thread.ts', import.meta.url).href),
  onEvent() {},
  monotonicMs: performance.now.bind(performance),
  othersSeenWithinMs: 50,
})
for (let owner = 0; ; owner = (owner + 1) % OWNERS) {
  const before = versions.owner(owner)
  await writer.write(['raise', owner])
  if (before !== undefined && versions.owner(owner) === before)
    throw fail(new Error(`owner ${owner} has its old version`))
  writeSync(1, `${owner}\n`)
}

function fail(error: Error): never {
  console.error(error)
  process.exit(3)
}
