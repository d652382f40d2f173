import { readFileSync } from 'node:fs'
import { makeDatabase } from '../databases.ts'
import { mixLoad, runWrk } from '../load/wrk.ts'
import { startPlantstore } from '../servers.ts'
import type { Row } from './row.ts'

const REQUESTS = 1_000_000
const IDLE_MS = 2000
/** The length of a load. The row repeats the load until the service has answered enough requests, and then once before each round. */
const LOAD_SECONDS = 5

/** The memory of the service. */
export const memory: Row = {
  name: 'memory',
  title: 'resident memory: idle, and after 1 000 000 mixed requests of 10 000 users',
  async run({ workspace, rounds, say }) {
    const { path, tokensFile } = await makeDatabase(workspace.file('memory.db'), { users: 10_000, plantsPerUser: 100 })
    const server = await startPlantstore(workspace, path)
    say('idle')
    await Bun.sleep(IDLE_MS)
    const idle = [residentMb(server.pid)]

    const load = mixLoad(tokensFile)
    let requests = 0
    const used: number[] = []
    // The memory depends on the time since the last garbage collection, so read it several times.
    while (used.length < rounds) {
      say(`${requests} requests, ${used.length} of ${rounds} rounds`)
      requests += (await runWrk(workspace, server, load, LOAD_SECONDS)).answered
      if (requests >= REQUESTS) used.push(residentMb(server.pid))
    }
    return {
      figures: [
        { name: 'idle', unit: 'MB', rounds: idle },
        { name: 'used', unit: 'MB', rounds: used },
      ],
      claims: [
        { name: 'idle', unit: 'MB', goal: 60, floor: 80, rounds: idle },
        { name: 'after 1 000 000 requests', unit: 'MB', goal: 100, floor: 140, rounds: used },
      ],
      notes: [`${requests} requests were answered`],
    }
  },
}

function residentMb(pid: number): number {
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1')) ?? []
  return (Number(kilobytes) * 1024) / 1_000_000
}
