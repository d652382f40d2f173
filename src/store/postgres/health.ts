import { PLANT_FIELDS } from '../../domain/plant.ts'
import { type HealthMethods, withKnownOutcome } from '../readiness.ts'
import type { Connections } from './connections.ts'
import { sqlState } from './errors.ts'
import { READ_ALL_TIMEOUT_MS } from './reads.ts'

/** PostgreSQL reads a whole text to count its characters. */
const NEGATIVE_LENGTH = PLANT_FIELDS.map((field) => `length(${field}) < 0`).join(' or ')

/** Statements that read whole tables, and the reasons for which they find something. */
const CHECKS: readonly (readonly [text: string, problem: string])[] = [
  [
    `select 1 from plantstore.plants where not exists (select 1 from plantstore.users where users.id = plants.user_id)`,
    'a row of plants belongs to no user',
  ],
  [
    `select 1 from plantstore.tokens where not exists (select 1 from plantstore.users where users.id = tokens.user_id)`,
    'a row of tokens belongs to no user',
  ],
  [`select 1 from plantstore.plants where ${NEGATIVE_LENGTH}`, 'a text has no length'],
  [`select 1 from plantstore.tokens where length(label) < 0 or length(hash) <> 32`, 'a token has no hash'],
  [
    `select 1 from plantstore.counters where last_user_id < (select max(id) from plantstore.users)`,
    'users are miscounted',
  ],
  [
    `select 1 from plantstore.counters where last_token_id < (select max(id) from plantstore.tokens)`,
    'tokens are miscounted',
  ],
]

/** Whether PostgreSQL can be read and written, and whether what it holds is whole. */
export const health = ({ read, plants }: Connections): HealthMethods => ({
  async checkReady() {
    await read('select 1 from plantstore.users limit 1')
    await plants.probe().catch(withKnownOutcome)
  },

  async checkIntegrity() {
    const problems: string[] = []
    for (const [text, problem] of CHECKS) {
      try {
        const rows = await read(text, [], READ_ALL_TIMEOUT_MS)
        problems.push(...rows.map(() => problem))
      } catch (error) {
        const cause = error instanceof Error ? error.cause : undefined
        // Data or an index that is damaged: that is the answer, too.
        if (!/^XX00[012]$/.test(sqlState(cause))) throw error
        problems.push(String(cause))
      }
    }
    return problems
  },
})
