import { requireSameAnswers } from '../answers.ts'
import { makeDatabase } from '../databases.ts'
import { createLoad } from '../load/wrk.ts'
import { PEER_NAMES, startPeer, startPlantstore } from '../servers.ts'
import { startBareEcho } from './bare.ts'
import { againstPeers } from './peers.ts'
import { compareRates } from './rates.ts'
import type { Row } from './row.ts'
import { watchWrites } from './written.ts'

const PEER_GOAL = { goal: 10, floor: 6 }

/** Durable creates: the service, a bare server that echoes, and the peers. */
export const create: Row = {
  name: 'create',
  title: 'create, 64 connections, durable',
  async run(bench) {
    const { workspace, rounds } = bench
    const seed = await makeDatabase(workspace.file('plantstore.db'), { users: 1, plantsPerUser: 100 })
    const databaseOf = (name: string) => workspace.file(`${name}.db`)
    const copies = PEER_NAMES.map((name) => ({ name, path: seed.copy(databaseOf(name)) }))
    const plantstore = await startPlantstore(workspace, seed.path)
    const peers = await Promise.all(copies.map(({ name, path }) => startPeer(workspace, name, path)))
    const writers = [plantstore, ...peers]
    await requireSameAnswers(writers, seed.token)
    const bare = await startBareEcho(bench, plantstore, seed.token)

    const checks = writers.map(({ name }) => ({ name, check: watchWrites(databaseOf(name)) }))
    const { figures, ratio, answered } = await compareRates(
      bench,
      [bare, ...writers].map((server) => ({ name: server.name, server, load: createLoad(seed.tokensFile) })),
    )
    for (const { name, check } of checks) check(name, answered(name), rounds)

    const toBare = { name: 'plantstore / bare echo', unit: '×', goal: 0.5, floor: 0.38 } as const
    return {
      figures,
      claims: [
        { ...toBare, rounds: ratio('plantstore', 'bare') },
        ...againstPeers(ratio, { elysia: PEER_GOAL, hono: PEER_GOAL, fastify: PEER_GOAL }),
      ],
    }
  },
}
