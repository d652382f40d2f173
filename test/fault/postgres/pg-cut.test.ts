import { expect } from 'bun:test'
import { startCluster } from '../../support/postgres-cluster.ts'
import { startPostgresProxy } from '../../support/postgres-proxy.ts'
import { OWN_POSTGRES } from '../../support/postgres-system.ts'
import { until } from '../../support/until.ts'
import { BUSY_REFUSAL, FAILED_REFUSAL } from '../history.ts'
import { rounds, testRounds } from '../rounds.ts'
import { startRound } from './round.ts'

const CUTS_PER_ROUND = rounds(15, 50)
/** The part of writes whose outcome a busy machine may be too slow to learn: a group or two. */
const REFUSED_MAX = 0.05
/** Successes between two cuts, at most. */
const BETWEEN_MAX = 100
/** A group of writes names its writer, which is a UUID. */
const WRITER = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/

for (const moment of ['sent', 'answered'] as const) {
  testRounds(
    `gives each write the answer that is true if the connection is cut after a group was ${moment}`,
    { short: 1, long: 30, needs: [OWN_POSTGRES] },
    async (random) => {
      using cluster = await startCluster()
      using proxy = startPostgresProxy(cluster.url)
      await using round = await startRound(cluster.url, random, proxy.by)
      for (let cut = 1; cut <= CUTS_PER_ROUND; cut++) {
        await cutNextGroup(proxy, moment)
        const stored = round.history.counts().acknowledged + random(BETWEEN_MAX)
        await until('plants are stored again', () => round.history.counts().acknowledged > stored)
      }
      // The database still runs, so the service can learn the outcome at once.
      expect(round.history.errors()).toBeLessThan(round.history.counts().acknowledged * REFUSED_MAX)
      await round.check([FAILED_REFUSAL, BUSY_REFUSAL])
    },
  )
}

/** Cuts the connection that brings the next group: when the database has the group, or when its answer arrives. */
async function cutNextGroup(
  { decide }: ReturnType<typeof startPostgresProxy>,
  moment: 'sent' | 'answered',
): Promise<void> {
  let ofGroup: object | undefined
  let isCut = false
  decide((from, bytes, connection) => {
    if (isCut) return 'pass'
    if (ofGroup === undefined && from === 'client' && WRITER.test(bytes.toString('latin1'))) ofGroup = connection
    isCut = ofGroup === connection && (moment === 'sent' || from === 'server')
    if (!isCut) return 'pass'
    return moment === 'sent' ? 'passThenCut' : 'cut'
  })
  await until('the connection is cut', () => isCut)
}
