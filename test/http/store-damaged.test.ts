import { describe, expect, test } from 'bun:test'
import { isTokenText, TOKEN_RANDOM_BYTES, tokenText } from '../../src/domain/token.ts'
import { damageTable, runSql } from '../store/sqlite/files.ts'
import { until } from '../support/until.ts'
import { ANSWERED_BEFORE_TOKENS, expectCodes, post, seen, unavailable } from './support/answers.ts'
import { expectDescribed } from './support/described.ts'
import { type RequestOptions, type Service, startService } from './support/service.ts'
import { IN_PROCESS } from './support/transports.ts'

/** Damages a table or an index. A commit and a checkpoint of another process first, so that neither WAL nor caches have its page. */
function damage(database: string, table: string): void {
  const plant = "insert into plants (user_id, id, name) select id, 7, 'Fern' from users"
  runSql(database, plant, 'pragma wal_checkpoint(truncate)')
  damageTable(database, table)
}

type Sent = readonly [method: string, path: string, options?: RequestOptions]

/** The writes find the damage before their commit, so their outcome is known. */
const REQUESTS: readonly (readonly [name: string, request: Sent])[] = [
  ['a list', ['GET', '/plants']],
  ['a capped list', ['GET', '/plants?limit=5']],
  ['a get', ['GET', '/plants/7']],
  ['a create', ['POST', '/plants', post('{"id":1000,"name":"Ivy"}')]],
  ['a put', ['PUT', '/plants/7', post('{"name":"Ivy"}')]],
  ['a put with an ETag', ['PUT', '/plants/7', post('{"name":"Ivy"}', { 'if-match': '"x"' })]],
  ['a delete', ['DELETE', '/plants/7']],
]

describe.each(IN_PROCESS)('a database with damaged plants, $name', (transport) => {
  const startDamaged = async (): Promise<Service> => {
    const service = await startService(transport)
    damage(service.database, 'plants')
    return service
  }

  test.each(REQUESTS)('answers %s with 50302, and that nothing is unknown', async (_, request) => {
    await using service = await startDamaged()

    const answer = await service.request(...request)

    expect(seen(answer)).toEqual(
      unavailable(50302, 'The store has failed, nothing was and nothing will be stored: try again later.'),
    )
    expectDescribed(request[0], request[1], answer)
  })

  test('tells the client nothing of the damage, and logs its reason', async () => {
    await using service = await startDamaged()

    const { text, headers } = await service.list('?limit=5')

    expect(text).not.toMatch(/sqlite|malformed|corrupt|database|select/i)
    const id = headers.get('x-request-id')
    const errors = () => service.logLines().filter(({ level, requestId }) => level === 'error' && requestId === id)
    await until('the error is logged', (see) => see(errors()).length > 0)
    expect(errors()).toEqual([
      expect.objectContaining({ reason: expect.stringContaining('database disk image is malformed') }),
    ])
  })
})

const GUESSED = tokenText(new Uint8Array(TOKEN_RANDOM_BYTES).fill(7))
const MISSPELT = GUESSED.replace(/(?<=plst_.{20})./, (letter) => (letter === 'A' ? 'B' : 'A'))
const WRONG_CHECKSUM = GUESSED.replace(/.$/, (letter) => (letter === 'A' ? 'B' : 'A'))

test.each(IN_PROCESS)(
  'a database with damaged tokens has 50302 for requests with a token, and others are answered as ever, $name',
  async (transport) => {
    await using service = await startService(transport)
    damage(service.database, 'sqlite_autoindex_tokens_1')

    expect([GUESSED, MISSPELT, WRONG_CHECKSUM].map(isTokenText)).toEqual([true, false, false])
    await expectCodes(service, [
      ...ANSWERED_BEFORE_TOKENS,
      ['GET', '/plants', { token: MISSPELT }, 40102],
      ['POST', '/plants', { token: WRONG_CHECKSUM }, 40102],
      ['GET', '/plants', {}, 50302],
      ['POST', '/plants', post('{"id":1,"name":"Fern"}'), 50302],
      ['DELETE', '/plants/x', {}, 50302],
      ['GET', '/plants', { token: GUESSED }, 50302],
    ])
  },
)
