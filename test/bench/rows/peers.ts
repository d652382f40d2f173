import type { Claim } from '../claims.ts'
import { PEER_NAMES, type PeerName } from '../servers.ts'
import type { Rates } from './rates.ts'

/** The claims that compare the service with each peer. */
export const againstPeers = (
  ratio: Rates['ratio'],
  goals: Readonly<Record<PeerName, Pick<Claim, 'goal' | 'floor'>>>,
): Claim[] =>
  PEER_NAMES.map((peer) => ({
    name: `plantstore / ${peer}`,
    unit: '×',
    ...goals[peer],
    rounds: ratio('plantstore', peer),
  }))
