import { type Content, countPlants, makeDatabase } from '../databases.ts'
import {
  createLoad,
  DELETES_PER_SECOND_MAX,
  deleteLoad,
  listLoad,
  pagesLoad,
  putLoad,
  withWarmUpSeconds,
} from '../load/wrk.ts'
import { ratesRow } from '../rounds.ts'
import { startPlantstore } from '../servers.ts'
import type { Bench, Row } from './row.ts'

const PLANTS_PER_LIST = 20

/** The stored plants of `put`. */
const PUT_PLANTS = 100_000
/** The sizes of `size`. Both databases have the same number of users, so that lists are equally long. */
const SIZES = [
  { plants: '1 000', content: { users: 40, plantsPerUser: 25 } },
  { plants: '10 000 000', content: { users: 40, plantsPerUser: 250_000 } },
]
/** The goal of two things that shall be equal, or nearly. */
const EQUAL = { goal: 1, floor: 0.8 }
const NEARLY = { goal: 0.9, floor: 0.7 }
/** The CPU time of puts. */
const LIKE_A_CREATE = { goal: 1.15, floor: 1.3 }
const WITH_A_READ = { goal: 1.6, floor: 1.8 }
const METRICS = { goal: 0.97, floor: 0.94 }

/** A server on a new database. */
async function serve({ workspace }: Bench, content: Content) {
  const seed = await makeDatabase(workspace.file(`${crypto.randomUUID()}.db`), content)
  return { ...seed, server: await startPlantstore(workspace, seed.path) }
}

/** The rows that compare the service with itself. */
export const OWN_RATES: readonly Row[] = [
  ratesRow({
    name: 'delete',
    title: 'delete against create, 64 connections, durable',
    async contestants({ workspace, rounds, seconds }) {
      const plantsPerUser = rounds * withWarmUpSeconds(seconds) * DELETES_PER_SECOND_MAX
      const seed = await makeDatabase(workspace.file('delete.db'), { users: 1, plantsPerUser })
      const paths = { create: seed.copy(workspace.file('create.db')), delete: seed.path }
      const loads = { create: createLoad(seed.tokensFile), delete: deleteLoad(seed.tokensFile) }
      return Promise.all(
        (['create', 'delete'] as const).map(async (name) => {
          const server = await startPlantstore(workspace, paths[name])
          return { name, server, load: loads[name], count: () => countPlants(paths[name]) }
        }),
      )
    },
    claims: [['delete', 'create', EQUAL]],
  }),
  ratesRow({
    name: 'put',
    title: 'puts that make a plant, replace one, and replace one with an ETag, against create, 64 connections, durable',
    async contestants({ workspace }) {
      const seed = await makeDatabase(workspace.file('put.db'), { users: 1, plantsPerUser: PUT_PLANTS })
      const { tokensFile } = seed
      const loads = {
        create: createLoad(tokensFile),
        'put, makes': putLoad(tokensFile),
        'put, replaces': putLoad(tokensFile, PUT_PLANTS),
        'put, with an ETag': putLoad(tokensFile, PUT_PLANTS, '"x"'),
      }
      return Promise.all(
        Object.entries(loads).map(async ([name, load]) => {
          const path = seed.copy(workspace.file(`${name}.db`))
          const server = await startPlantstore(workspace, path)
          const makes = name === 'create' || name === 'put, makes'
          return { name, server, load, ...(makes && { count: () => countPlants(path) }) }
        }),
      )
    },
    claims: [],
    cpuClaims: [
      ['put, makes', 'create', LIKE_A_CREATE],
      ['put, replaces', 'create', LIKE_A_CREATE],
      ['put, with an ETag', 'create', WITH_A_READ],
    ],
  }),
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
