import { type Content, makeDatabase } from '../databases.ts'
import { createLoad, type Load, listLoad, pagesLoad } from '../load/wrk.ts'
import { startPlantstore } from '../servers.ts'
import { compareRates } from './rates.ts'
import type { Bench, Row } from './row.ts'

const SMALL: Content = { users: 40, plantsPerUser: 25 }
const LARGE: Content = { users: 40, plantsPerUser: 250_000 }
/** Leaves 20 plants behind each id, also in the small database. */
const PLANTS_PER_LIST = 20

const LOSS = { unit: '×', goal: 0.9, floor: 0.7 } as const

/** The cost of more plants. Both databases have the same number of users, so that lists are equally long. */
export const size: Row = {
  name: 'size',
  title: '1 000 → 10 000 000 plants stored, of 40 users each, 64 connections',
  async run(bench) {
    bench.say('making the plants')
    const small = await start(bench, 'small', SMALL)
    const large = await start(bench, 'large', LARGE)
    const compare = async (work: string, loadOf: (arm: Arm) => Load) => {
      const names = { small: `${work}, 1 000`, large: `${work}, 10 000 000` }
      const { figures, ratio } = await compareRates(bench, [
        { name: names.small, server: small.server, load: loadOf(small) },
        { name: names.large, server: large.server, load: loadOf(large) },
      ])
      const claim = { name: `${work}: 10 000 000 / 1 000 plants`, ...LOSS, rounds: ratio(names.large, names.small) }
      return { figures, claim }
    }

    const works = [
      await compare('list of 20', ({ tokensFile }) => listLoad(tokensFile)),
      await compare('list of 20, never the same', ({ tokensFile, plantsPerUser }) =>
        pagesLoad(tokensFile, 0, plantsPerUser - PLANTS_PER_LIST),
      ),
      await compare('create', ({ tokensFile }) => createLoad(tokensFile)),
    ]
    return {
      figures: works.flatMap(({ figures }) => figures),
      claims: works.map(({ claim }) => claim),
    }
  },
}

type Arm = Awaited<ReturnType<typeof start>>

async function start({ workspace }: Bench, name: string, content: Content) {
  const { path, tokensFile } = await makeDatabase(workspace.file(`${name}.db`), content)
  return { server: await startPlantstore(workspace, path), tokensFile, plantsPerUser: content.plantsPerUser }
}
