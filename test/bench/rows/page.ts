import { capture } from '../answers.ts'
import { makeDatabase } from '../databases.ts'
import { listLoad, pagesLoad } from '../load/wrk.ts'
import { startPlantstore } from '../servers.ts'
import { compareRates } from './rates.ts'
import type { Row } from './row.ts'

const PLANTS = 1_000_000
const LATE_ID = 999_000
const LATE_PATH = `/plants?limit=20&after=${LATE_ID}`
/** The number of first or last plants in which random pages begin. */
const RANGE_PLANTS = 100_000

/** The promise is an equal rate, so a goal within the spread counts as reached. */
const SAME = { unit: '×', goal: 1, floor: 0.8, isReachedWithinSpread: true } as const

/** The cost of a page far from the first plant. */
export const page: Row = {
  name: 'page',
  title: 'page of 20 after the 999 000th plant against the first page, 64 connections',
  async run(bench) {
    const { workspace } = bench
    const { path, token, tokensFile } = await makeDatabase(workspace.file('page.db'), {
      users: 1,
      plantsPerUser: PLANTS,
    })
    const server = await startPlantstore(workspace, path)
    const late = await capture(server, { method: 'GET', path: LATE_PATH, token })
    if (!late.body.startsWith(`[{"name":"Monstera deliciosa ${LATE_ID + 1}"`)) throw new Error('this is another page')

    const same = await compareRates(bench, [
      { name: 'first page', server, load: listLoad(tokensFile) },
      { name: 'late page', server, load: listLoad(tokensFile, LATE_PATH) },
    ])
    const random = await compareRates(bench, [
      { name: 'random early pages', server, load: pagesLoad(tokensFile, 0, RANGE_PLANTS) },
      { name: 'random late pages', server, load: pagesLoad(tokensFile, LATE_ID - RANGE_PLANTS, RANGE_PLANTS) },
    ])
    return {
      figures: [...same.figures, ...random.figures],
      claims: [
        { name: 'late / first page', ...SAME, rounds: same.ratio('late page', 'first page') },
        {
          ...{ name: 'late / early pages, never the same', ...SAME },
          rounds: random.ratio('random late pages', 'random early pages'),
        },
      ],
    }
  },
}
