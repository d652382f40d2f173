/** Plants with Elysia as its documentation shows it, and `bun:sqlite`. Started as `bun elysia.ts DATABASE`; prints its port. */
import { Database } from 'bun:sqlite'
import { bearer } from '@elysiajs/bearer'
import { Elysia, t } from 'elysia'

const LIMIT_MAX = 2147483647

interface Caller {
  readonly userId: number
  readonly scope: string
}

interface Plant {
  readonly name: string
  readonly tag: string | null
}

const db = new Database(process.argv[2], { readwrite: true })
db.run('pragma journal_mode = wal')
db.run('pragma synchronous = full')
db.run('pragma foreign_keys = on')

const findCaller = db.query<Caller, [Uint8Array, number]>(
  `select users.id as userId, tokens.scope
   from tokens join users on users.id = tokens.user_id
   where tokens.hash = ?1 and tokens.revoked_at_ms is null
     and (tokens.expires_at_ms is null or tokens.expires_at_ms > ?2)`,
)
const listPlants = db.query<Plant, [number, number, number]>(
  'select name, tag from plants where user_id = ?1 and id > ?2 order by id limit ?3',
)
const insertPlant = db.query<unknown, [number, number, string, string | null]>(
  'insert into plants (user_id, id, name, tag) values (?1, ?2, ?3, ?4) on conflict do nothing',
)

const toPlant = ({ name, tag }: Plant) => (tag === null ? { name } : { name, tag })

const app = new Elysia()
  .use(bearer())
  .resolve(({ bearer, set, status }) => {
    const hash = new Bun.CryptoHasher('sha256').update(bearer ?? '').digest()
    const caller = findCaller.get(hash, Date.now())
    if (caller === null) {
      set.headers['www-authenticate'] = 'Bearer realm="plantstore", error="invalid_token"'
      return status(401, { error: 40102, message: 'The token is not valid.' })
    }
    return { caller }
  })
  .get(
    '/plants',
    ({ caller, query }) =>
      listPlants.all(caller.userId, query.after ?? Number.MIN_SAFE_INTEGER, query.limit ?? LIMIT_MAX).map(toPlant),
    {
      query: t.Object({
        limit: t.Optional(t.Numeric({ minimum: 0, maximum: LIMIT_MAX })),
        after: t.Optional(t.Numeric()),
      }),
    },
  )
  .post(
    '/plants',
    ({ caller, body: { id, name, tag }, status }) => {
      if (caller.scope !== 'write') return status(403, { error: 40301, message: 'The token may only read.' })
      const { changes } = insertPlant.run(caller.userId, id, name, tag ?? null)
      if (changes === 0) return status(409, { error: 40901, message: 'There is a plant with this id already.' })
      return tag === undefined ? { name } : { name, tag }
    },
    { body: t.Object({ id: t.Integer(), name: t.String(), tag: t.Optional(t.String()) }) },
  )
  .listen({ hostname: '127.0.0.1', port: 0 })

console.log(app.server?.port)
