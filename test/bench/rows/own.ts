import { countPlants, makeDatabase } from '../databases.ts'
import { createLoad, DELETES_PER_SECOND_MAX, deleteLoad, listLoad, pagesLoad, withWarmUpSeconds } from '../load/wrk.ts'
import { compareRates } from '../rounds.ts'
import { startPlantstore } from '../servers.ts'
import type { Row } from './row.ts'

/** The difference that metrics make is smaller than the noise between seconds. Many short measurements close to each other show it. */
const LOOKS_PER_ROUND = 8
const LOOK_SECONDS = 1

const PAGED_PLANTS = 1_000_000
const LATE_ID = 999_000
const LATE_PATH = `/plants?limit=20&after=${LATE_ID}`
/** The number of first or last plants in which random pages begin. */
const RANGE_PLANTS = 100_000

/** The sizes of `size`. Both databases have the same number of users, so that lists are equally long. */
const SMALL = { users: 40, plantsPerUser: 25 }
const LARGE = { users: 40, plantsPerUser: 250_000 }
const PLANTS_PER_LIST = 20

/** Durable deletes, against durable creates. */
const deleteRow: Row = {
  name: 'delete',
  title: 'delete against create, 64 connections, durable',
  async run(bench) {
    const { workspace, rounds, seconds } = bench
    const plantsPerUser = rounds * withWarmUpSeconds(seconds) * DELETES_PER_SECOND_MAX
    const seed = await makeDatabase(workspace.file('delete.db'), { users: 1, plantsPerUser })
    const copy = seed.copy(workspace.file('create.db'))
    const { figures, ratio } = await compareRates(bench, [
      {
        name: 'create',
        server: await startPlantstore(workspace, copy),
        load: createLoad(seed.tokensFile),
        count: () => countPlants(copy),
      },
      {
        name: 'delete',
        server: await startPlantstore(workspace, seed.path),
        load: deleteLoad(seed.tokensFile),
        count: () => countPlants(seed.path),
      },
    ])
    const claim = { name: 'delete / create', unit: '×', goal: 1, floor: 0.8 } as const
    return { figures, claims: [{ ...claim, rounds: ratio('delete', 'create') }] }
  },
}

/** One plant, against lists of 20. */
const get: Row = {
  name: 'get',
  title: 'get one plant against a list of 20, one user, 64 connections',
  async run(bench) {
    const { workspace } = bench
    const { path, tokensFile } = await makeDatabase(workspace.file('get.db'), { users: 1, plantsPerUser: 1000 })
    const server = await startPlantstore(workspace, path)
    const { figures, ratio } = await compareRates(bench, [
      { name: 'get', server, load: listLoad(tokensFile, '/plants/7') },
      { name: 'list of 20, cached', server, load: listLoad(tokensFile) },
      { name: 'list of 20, never the same', server, load: pagesLoad(tokensFile, 0, 1000 - PLANTS_PER_LIST) },
    ])
    const rounds = ratio('get', 'list of 20, never the same')
    const claim = { name: 'get / list of 20, never the same', unit: '×', goal: 1, floor: 0.8, rounds } as const
    return { figures, claims: [claim] }
  },
}

/** The cost of more plants. */
const size: Row = {
  name: 'size',
  title: '1 000 → 10 000 000 plants stored, of 40 users each, 64 connections',
  async run(bench) {
    const { workspace, say } = bench
    say('making the plants')
    const small = await makeDatabase(workspace.file('small.db'), SMALL)
    const large = await makeDatabase(workspace.file('large.db'), LARGE)
    const servers = {
      small: await startPlantstore(workspace, small.path),
      large: await startPlantstore(workspace, large.path),
    }
    // Leave 20 plants behind each id, also in the small database.
    const range = ({ plantsPerUser }: typeof SMALL) => plantsPerUser - PLANTS_PER_LIST
    const works = [
      { work: 'list of 20', loads: [listLoad(small.tokensFile), listLoad(large.tokensFile)] },
      {
        work: 'list of 20, never the same',
        loads: [pagesLoad(small.tokensFile, 0, range(SMALL)), pagesLoad(large.tokensFile, 0, range(LARGE))],
      },
      { work: 'create', loads: [createLoad(small.tokensFile), createLoad(large.tokensFile)] },
    ] as const
    const figures = []
    const claims = []
    for (const { work, loads } of works) {
      const names = { small: `${work}, 1 000`, large: `${work}, 10 000 000` }
      const rates = await compareRates(bench, [
        { name: names.small, server: servers.small, load: loads[0] },
        { name: names.large, server: servers.large, load: loads[1] },
      ])
      const claim = { name: `${work}: 10 000 000 / 1 000 plants`, unit: '×', goal: 0.9, floor: 0.7 } as const
      figures.push(...rates.figures)
      claims.push({ ...claim, rounds: rates.ratio(names.large, names.small) })
    }
    return { figures, claims }
  },
}

/** The cost of a page far from the first plant. */
const page: Row = {
  name: 'page',
  title: 'page of 20 after the 999 000th plant against the first page, 64 connections',
  async run(bench) {
    const { workspace } = bench
    const content = { users: 1, plantsPerUser: PAGED_PLANTS }
    const { path, token, tokensFile } = await makeDatabase(workspace.file('page.db'), content)
    const server = await startPlantstore(workspace, path)
    const late = await fetch(server.url + LATE_PATH, { headers: { authorization: `Bearer ${token}` } })
    if (!(await late.text()).startsWith(`[{"name":"Monstera deliciosa ${LATE_ID + 1}"`))
      throw new Error('this is another page')
    const same = await compareRates(bench, [
      { name: 'first page', server, load: listLoad(tokensFile) },
      { name: 'late page', server, load: listLoad(tokensFile, LATE_PATH) },
    ])
    const random = await compareRates(bench, [
      { name: 'random early pages', server, load: pagesLoad(tokensFile, 0, RANGE_PLANTS) },
      { name: 'random late pages', server, load: pagesLoad(tokensFile, LATE_ID - RANGE_PLANTS, RANGE_PLANTS) },
    ])
    // The promise is an equal rate, so a goal within the spread counts as reached.
    const equal = { unit: '×', goal: 1, floor: 0.8, isReachedWithinSpread: true } as const
    return {
      figures: [...same.figures, ...random.figures],
      claims: [
        { name: 'late / first page', ...equal, rounds: same.ratio('late page', 'first page') },
        {
          ...{ name: 'late / early pages, never the same', ...equal },
          rounds: random.ratio('random late pages', 'random early pages'),
        },
      ],
    }
  },
}

/** The cost of counting for --metrics-listen. */
const metrics: Row = {
  name: 'metrics',
  title: 'list of 20 and create, one user, 64 connections, with --metrics-listen against without',
  async run(bench) {
    const { workspace } = bench
    const seed = await makeDatabase(workspace.file('off.db'), { users: 1, plantsPerUser: 1000 })
    const on = await startPlantstore(workspace, seed.copy(workspace.file('on.db')), { hasMetrics: true })
    const off = await startPlantstore(workspace, seed.path)
    const loads = { list: listLoad(seed.tokensFile), create: createLoad(seed.tokensFile) }
    const { figures, ratio } = await compareRates(
      { ...bench, rounds: bench.rounds * LOOKS_PER_ROUND, seconds: LOOK_SECONDS },
      Object.entries(loads).flatMap(([operation, load]) => [
        { name: `${operation}, off`, server: off, load },
        { name: `${operation}, on`, server: on, load },
      ]),
    )
    const claims = Object.keys(loads).map((operation) => ({
      ...({ name: `${operation}, on / off`, unit: '×', goal: 0.97, floor: 0.94 } as const),
      rounds: ratio(`${operation}, on`, `${operation}, off`),
    }))
    return { figures, claims }
  },
}

/** The rows that compare the service with itself. */
export const OWN_RATES: readonly Row[] = [deleteRow, get, size, page, metrics]
