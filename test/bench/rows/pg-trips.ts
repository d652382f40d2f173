import { countStatements, type Executed, seedDatabase } from '../database-server.ts'
import { createLoad, type Load, listLoad, runWrk } from '../load/wrk.ts'
import { startContestant, startPlantstore } from '../servers.ts'
import { requireDatabaseServer } from './pg-rates.ts'
import type { Row } from './row.ts'

/** The number of statements that are shown, the most frequent first. */
const SHOWN = 4

/** The statements that PostgreSQL executes for each request. */
export const pgTrips: Row = {
  name: 'pg-trips',
  title: 'statements that PostgreSQL executes for each request, 64 connections',
  async run(bench) {
    const { workspace, seconds, rounds, say } = bench
    const server = requireDatabaseServer(bench)
    const seed = await seedDatabase(workspace, server, 1000)
    const plantstore = await startPlantstore(workspace, seed.url)
    const fastify = await startContestant(workspace, 'fastify', ['node', 'fastify-pg.js'], seed.url)
    const loads: Readonly<Record<string, Load>> = {
      list: listLoad(seed.tokensFile),
      create: createLoad(seed.tokensFile),
    }
    const notes: string[] = []

    const count = async (name: string, target: typeof plantstore): Promise<number[]> => {
      const load = loads[name]
      if (load === undefined) throw new Error(`there is no load ${name}`)
      const perRequest: number[] = []
      for (let round = 0; round < rounds; round++) {
        say(`round ${round + 1} of ${rounds}: ${name} by ${target.name}`)
        let answered = 0
        const executed = await countStatements(server, seed.url, async () => {
          answered = (await runWrk(workspace, target, load, seconds)).answered
        })
        perRequest.push(executed.reduce((sum, { calls }) => sum + calls, 0) / answered)
        if (round === 0) notes.push(...describe(name, target.name, executed, answered))
      }
      return perRequest
    }
    const [list, create] = [await count('list', plantstore), await count('create', plantstore)]
    const [theirList, theirCreate] = [await count('list', fastify), await count('create', fastify)]

    const unit = 'statements' as const
    return {
      figures: [
        { name: 'a list by fastify', unit, rounds: theirList },
        { name: 'a create by fastify', unit, rounds: theirCreate },
      ],
      claims: [
        { name: 'a list by plantstore, its token known', unit, goal: 1.05, floor: 1.1, rounds: list },
        { name: 'a create by plantstore', unit, goal: 0.25, floor: 0.5, rounds: create },
      ],
      notes,
    }
  },
}

const describe = (name: string, server: string, executed: readonly Executed[], answered: number): string[] => [
  `${answered} answers to ${name} by ${server}:`,
  ...executed.slice(0, SHOWN).map(({ text, calls }) => `  ${calls} × ${text.slice(0, 90)}`),
]
