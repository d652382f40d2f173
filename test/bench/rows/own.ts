import { type Content, makeDatabase } from '../databases.ts'
import { createLoad, listLoad, pagesLoad } from '../load/wrk.ts'
import { ratesRow } from '../rounds.ts'
import { startPlantstore } from '../servers.ts'
import type { Bench, Row } from './row.ts'

const PLANTS_PER_LIST = 20

/** The sizes of `size`. Both databases have the same number of users, so that lists are equally long. */
const SIZES = [
  { plants: '1 000', content: { users: 40, plantsPerUser: 25 } },
  { plants: '10 000 000', content: { users: 40, plantsPerUser: 250_000 } },
]
/** The goal of two things that shall be equal, or nearly. */
const EQUAL = { goal: 1, floor: 0.8 }
const NEARLY = { goal: 0.9, floor: 0.7 }
const METRICS = { goal: 0.97, floor: 0.94 }

/** A server on a new database. */
async function serve({ workspace }: Bench, content: Content) {
  const seed = await makeDatabase(workspace.file(`${crypto.randomUUID()}.db`), content)
  return { ...seed, server: await startPlantstore(workspace, seed.path) }
}

/** The rows that compare the service with itself. */
export const OWN_RATES: readonly Row[] = [
  ratesRow({
    name: 'get',
    title: 'get one plant against a list of 20, one user, 64 connections',
    async contestants(bench) {
      const { server, tokensFile } = await serve(bench, { users: 1, plantsPerUser: 1000 })
      return [
        { name: 'get', server, load: listLoad(tokensFile, '/plants/7') },
        { name: 'list of 20, cached', server, load: listLoad(tokensFile) },
        { name: 'list of 20, never the same', server, load: pagesLoad(tokensFile, 0, 1000 - PLANTS_PER_LIST) },
      ]
    },
    claims: [['get', 'list of 20, never the same', EQUAL]],
  }),
  ratesRow({
    name: 'size',
    title: '1 000 → 10 000 000 plants stored, of 40 users each, 64 connections',
    async contestants(bench) {
      bench.say('making the plants')
      const loaded = SIZES.map(async ({ plants, content }) => {
        const { server, tokensFile } = await serve(bench, content)
        // Leave 20 plants behind each id, also in the small database.
        const pages = pagesLoad(tokensFile, 0, content.plantsPerUser - PLANTS_PER_LIST)
        return [
          { name: `list of 20, ${plants}`, server, load: listLoad(tokensFile) },
          { name: `list of 20, never the same, ${plants}`, server, load: pages },
          { name: `create, ${plants}`, server, load: createLoad(tokensFile) },
        ]
      })
      return (await Promise.all(loaded)).flat()
    },
    claims: ['list of 20', 'list of 20, never the same', 'create'].map(
      (work) => [`${work}, 10 000 000`, `${work}, 1 000`, NEARLY] as const,
    ),
  }),
  ratesRow({
    name: 'metrics',
    title: 'list of 20 and create, one user, 64 connections, with --metrics-listen against without',
    async contestants({ workspace }) {
      const seed = await makeDatabase(workspace.file('off.db'), { users: 1, plantsPerUser: 1000 })
      const on = await startPlantstore(workspace, seed.copy(workspace.file('on.db')), {
        flags: ['--metrics-listen', '127.0.0.1:0'],
      })
      const off = await startPlantstore(workspace, seed.path)
      const loads = { list: listLoad(seed.tokensFile), create: createLoad(seed.tokensFile) }
      return Object.entries(loads).flatMap(([operation, load]) => [
        { name: `${operation}, off`, server: off, load },
        { name: `${operation}, on`, server: on, load },
      ])
    },
    looks: 8,
    claims: ['list', 'create'].map((operation) => [`${operation}, on`, `${operation}, off`, METRICS] as const),
  }),
]
