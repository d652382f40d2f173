import { expect } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { COMMAND } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { addPlants } from '../support/many-plants.ts'
import { createTokenIn } from '../support/tokens.ts'
import { ROUNDS_TIMEOUT_MS, testLong } from './rounds.ts'

const MILLION = 1_000_000
/** What a million plants may take of a processor, each way: so long on a machine that does nothing else, and waits for its disk. */
const CPU_MAX_S = 9
/** More memory than that neither takes. */
const MEMORY_MAX_BYTES = 250 * 1024 ** 2
/** Of the memory for a million, what three million may take: it does not grow with them. */
const MEMORY_SHARE_MAX = 1.25
const LOOK_MS = 20

testLong(
  'a million plants are exported and imported in under 9 s of a processor each, and three million in no more memory',
  async () => {
    using folder = makeFolder()
    const peaks: Record<string, number[]> = { export: [], import: [] }
    for (const plants of [MILLION, 3 * MILLION]) {
      const [from, to] = ['from', 'to'].map((name) => join(folder.path, `${name}-${plants}.db`))
      const lines = join(folder.path, `${plants}.jsonl`)
      for (const database of [from, to]) await createTokenIn(database ?? '')
      addPlants(from ?? '', plants)

      for (const [name, args, stdout] of [
        ['export', ['--database', from ?? ''], Bun.file(lines)],
        ['import', [lines, '--database', to ?? ''], 'ignore'],
      ] as const) {
        const { seconds, cpuSeconds, peakBytes, exitCode } = await measure([name, ...args], stdout)
        console.log(
          `${name} of ${plants}: ${seconds.toFixed(1)} s, of a processor ${cpuSeconds.toFixed(1)} s, ${Math.round(peakBytes / 1024 ** 2)} MiB`,
        )
        expect(exitCode).toBe(0)
        expect(peakBytes).toBeLessThan(MEMORY_MAX_BYTES)
        expect(cpuSeconds).toBeLessThan((CPU_MAX_S * plants) / MILLION)
        peaks[name]?.push(peakBytes)
      }
    }
    for (const [million = 0, threeMillion = Number.POSITIVE_INFINITY] of Object.values(peaks)) {
      expect(threeMillion / million).toBeLessThan(MEMORY_SHARE_MAX)
    }
  },
  ROUNDS_TIMEOUT_MS,
)

/** Runs a command, and looks at the most memory that it has had (proc(5)). */
async function measure(args: readonly string[], stdout: 'ignore' | Bun.BunFile) {
  const begunMs = performance.now()
  const child = Bun.spawn([...COMMAND, ...args], { stdio: ['ignore', stdout, 'ignore'] })
  let peakBytes = 0
  while (child.exitCode === null && child.signalCode === null) {
    peakBytes = peakOf(child.pid) ?? peakBytes
    await Bun.sleep(LOOK_MS)
  }
  const seconds = (performance.now() - begunMs) / 1000
  const cpuSeconds = Number(child.resourceUsage()?.cpuTime.total ?? 0n) / 1e6
  return { seconds, cpuSeconds, peakBytes, exitCode: await child.exited }
}

/** Nothing once it has ended. */
function peakOf(pid: number): number | undefined {
  const [, kib] = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'latin1')) ?? []
  return kib === undefined ? undefined : Number(kib) * 1024
}
