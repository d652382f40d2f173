import { requireSameAnswers } from '../answers.ts'
import { makeDatabase } from '../databases.ts'
import { listLoad } from '../load/wrk.ts'
import { PEER_NAMES, startPeer, startPlantstore } from '../servers.ts'
import { startBareList } from './bare.ts'
import { againstPeers } from './peers.ts'
import { compareRates } from './rates.ts'
import type { Row } from './row.ts'

/** A list of one user: the service, a bare server and the peers. */
export const list: Row = {
  name: 'list',
  title: 'list of 20, one user, 64 connections',
  async run(bench) {
    const { workspace } = bench
    const seed = await makeDatabase(workspace.file('list.db'), { users: 1, plantsPerUser: 1000 })
    const plantstore = await startPlantstore(workspace, seed.path)
    const peers = await Promise.all(
      PEER_NAMES.map((name) => startPeer(workspace, name, seed.copy(workspace.file(`${name}.db`)))),
    )
    await requireSameAnswers([plantstore, ...peers], seed.token)
    const bare = await startBareList(bench, plantstore, seed.token)

    const load = listLoad(seed.tokensFile)
    const { figures, ratio } = await compareRates(
      bench,
      [bare, plantstore, ...peers].map((server) => ({ name: server.name, server, load })),
    )

    const toBare = { name: 'plantstore / bare', unit: '×', goal: 0.8, floor: 0.62 } as const
    return {
      figures,
      claims: [
        { ...toBare, rounds: ratio('plantstore', 'bare') },
        ...againstPeers(ratio, {
          elysia: { goal: 2.5, floor: 1.5 },
          hono: { goal: 2.5, floor: 1.5 },
          fastify: { goal: 4, floor: 2.5 },
        }),
      ],
    }
  },
}

/** The same list by many users in random order. */
export const listUsers: Row = {
  name: 'list-users',
  title: 'list of 20, 10 000 users in random order, 1 000 000 plants, 64 connections',
  async run(bench) {
    const { workspace } = bench
    const seed = await makeDatabase(workspace.file('list-users.db'), { users: 10_000, plantsPerUser: 100 })
    const plantstore = await startPlantstore(workspace, seed.path)
    const bare = await startBareList(bench, plantstore, seed.token)

    const load = listLoad(seed.tokensFile)
    const { figures, ratio } = await compareRates(
      bench,
      [bare, plantstore].map((server) => ({ name: server.name, server, load })),
    )

    const toBare = { name: 'plantstore / bare', unit: '×', goal: 0.6, floor: 0.45 } as const
    return { figures, claims: [{ ...toBare, rounds: ratio('plantstore', 'bare') }] }
  },
}
