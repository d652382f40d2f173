import { countStatements, type Executed, requireDatabaseServer, seedDatabase } from '../database-server.ts'
import { CONNECTIONS, createLoad, listLoad, runWrk } from '../load/wrk.ts'
import { startPeer } from '../peers.ts'
import { type Server, startPlantstore } from '../servers.ts'
import type { Row } from './row.ts'

/** The number of statements that `pg-trips` shows, the most frequent first. */
const SHOWN = 4

/** The statements that PostgreSQL executes for each request. */
export const pgTrips: Row = {
  name: 'pg-trips',
  title: `statements that PostgreSQL executes for each request, ${CONNECTIONS} connections`,
  async run(bench) {
    const { workspace, seconds, rounds, say } = bench
    const server = requireDatabaseServer(bench)
    const seed = await seedDatabase(workspace, server, 1000)
    const [plantstore, fastify] = [
      await startPlantstore(workspace, seed.url),
      await startPeer(workspace, 'fastify', seed.url),
    ]
    const list = { name: 'a list', load: listLoad(seed.tokensFile) }
    const create = { name: 'a create', load: createLoad(seed.tokensFile) }
    const notes: string[] = []

    const count = async ({ name, load }: typeof list, target: Server): Promise<number[]> => {
      const perRequest: number[] = []
      for (let round = 0; round < rounds; round++) {
        say(`round ${round + 1} of ${rounds}: ${name} by ${target.name}`)
        let answered = 0
        const executed = await countStatements(server, seed.url, async () => {
          answered = (await runWrk(workspace, target, load, seconds)).answered
        })
        perRequest.push(executed.reduce((sum, { calls }) => sum + calls, 0) / answered)
        if (round === 0) notes.push(`${answered} answers to ${name} by ${target.name}:`, ...describe(executed))
      }
      return perRequest
    }
    const unit = 'statements' as const
    return {
      claims: [
        { name: 'a list, its token known', unit, goal: 1.05, floor: 1.1, rounds: await count(list, plantstore) },
        { name: 'a create', unit, goal: 0.25, floor: 0.5, rounds: await count(create, plantstore) },
      ],
      figures: [
        { name: 'a list by fastify', unit, rounds: await count(list, fastify) },
        { name: 'a create by fastify', unit, rounds: await count(create, fastify) },
      ],
      notes,
    }
  },
}

const describe = (executed: readonly Executed[]): string[] =>
  executed.slice(0, SHOWN).map(({ text, calls }) => `  ${calls} × ${text.slice(0, 90)}`)
