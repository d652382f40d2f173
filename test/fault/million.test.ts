import { expect } from 'bun:test'
import { join } from 'node:path'
import { COMMAND } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { addPlants } from '../support/many-plants.ts'
import { peakMib } from '../support/process.ts'
import { createTokenIn } from '../support/tokens.ts'
import { until } from '../support/until.ts'
import { testLong } from './rounds.ts'

const MILLION = 1_000_000
/** The CPU time that a million plants may take each way, which is the time on an idle machine with a fast disk. */
const CPU_MAX_S = 9
/** The most memory that a command may take. */
const MEMORY_MAX_MIB = 250
/** How much more memory three million plants may take than one million: memory does not grow with them. */
const MEMORY_SHARE_MAX = 1.25
const LOOK_MS = 20

testLong(
  'export and import of a million plants each take under 9 s of CPU time, and of three million no more memory',
  async () => {
    using folder = makeFolder()
    const peaks: { export: number; import: number }[] = []
    // The peak of a run depends on when garbage is collected, so a million is tried twice.
    for (const [run, plants] of [MILLION, MILLION, 3 * MILLION].entries()) {
      const file = (name: string) => join(folder.path, `${run}-${name}`)
      const [from, to, lines] = [file('from.db'), file('to.db'), file('lines')]
      for (const database of [from, to]) await createTokenIn(database)
      addPlants(from, plants)

      const exported = await measure(['export', '--database', from], Bun.file(lines))
      const imported = await measure(['import', lines, '--database', to])
      for (const { cpuSeconds } of [exported, imported]) {
        expect(cpuSeconds).toBeLessThan((CPU_MAX_S * plants) / MILLION)
      }
      peaks.push({ export: exported.mib, import: imported.mib })
    }
    for (const name of ['export', 'import'] as const) {
      const [first = 0, second = 0, threeMillion = Number.POSITIVE_INFINITY] = peaks.map((peak) => peak[name])
      expect(threeMillion / Math.max(first, second)).toBeLessThan(MEMORY_SHARE_MAX)
    }
  },
)

/** Runs a command, expects bounded memory, and returns its peak memory and its CPU time. */
async function measure(args: readonly string[], stdout: 'ignore' | Bun.BunFile = 'ignore') {
  const begunMs = performance.now()
  const child = Bun.spawn([...COMMAND, ...args], { stdio: ['ignore', stdout, 'ignore'] })
  let mib = 0
  const look = () => {
    // A process that has ended has no memory.
    mib = peakMib(child.pid) || mib
    return child.exitCode !== null || child.signalCode !== null
  }
  await until(`${args[0]} has ended`, look, { lookMs: LOOK_MS })
  const cpuSeconds = Number(child.resourceUsage()?.cpuTime.total ?? 0n) / 1e6
  const seconds = (performance.now() - begunMs) / 1000
  console.log(`${args.join(' ')}: ${seconds.toFixed(1)} s, CPU time ${cpuSeconds.toFixed(1)} s, ${mib.toFixed(0)} MiB`)
  expect(await child.exited).toBe(0)
  expect(mib).toBeLessThan(MEMORY_MAX_MIB)
  return { mib, cpuSeconds }
}
