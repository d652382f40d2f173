/** Plants with Elysia as its documentation shows it, and `bun:sqlite`. Started as `bun elysia.ts DATABASE`; prints its port. */
import { Database } from 'bun:sqlite'
import { bearer } from '@elysiajs/bearer'
import { Elysia, t } from 'elysia'

const LIMIT_MAX = 2147483647
const NOT_FOUND = { error: 40402, message: 'You have no plant with this id.' }
const EXISTS = {
  error: 40901,
  message:
    'You have a plant with this id already, and nothing was changed: GET /plants/{id} shows it, and PUT /plants/{id} replaces it and may be repeated.',
}
const INVALID: Readonly<Record<string, object>> = {
  body: { error: 40002, message: 'The body must be a JSON object with `id` and `name`, and optionally `tag`.' },
  query: { error: 40003, message: '`limit` must be a whole decimal number from 0 to 2147483647, given once.' },
  params: {
    error: 40004,
    message: 'The id in the path must be a decimal int64 without a plus sign and leading zeros.',
  },
}

interface Caller {
  readonly userId: number
  readonly user: string
  readonly scope: string
  readonly expiresAtMs: number | null
}

interface Plant {
  readonly id: number
  readonly name: string
  readonly tag: string | null
}

const db = new Database(process.argv[2], { readwrite: true })
db.run('pragma journal_mode = wal')
db.run('pragma synchronous = full')
db.run('pragma foreign_keys = on')

const findCaller = db.query<Caller, [Uint8Array, number]>(
  `select users.id as userId, users.name as user, tokens.scope, tokens.expires_at_ms as expiresAtMs
   from tokens join users on users.id = tokens.user_id
   where tokens.hash = ?1 and tokens.revoked_at_ms is null and users.blocked_at_ms is null
     and (tokens.expires_at_ms is null or tokens.expires_at_ms > ?2)`,
)
const listPlants = db.query<Plant, [number, number, number]>(
  'select id, name, tag from plants where user_id = ?1 and id > ?2 order by id limit ?3',
)
const getPlant = db.query<Plant, [number, number]>('select id, name, tag from plants where user_id = ?1 and id = ?2')
const insertPlant = db.query<unknown, [number, number, string, string | null]>(
  'insert into plants (user_id, id, name, tag) values (?1, ?2, ?3, ?4) on conflict do nothing',
)
const updatePlant = db.query<unknown, [number, number, string, string | null]>(
  'update plants set name = ?3, tag = ?4 where user_id = ?1 and id = ?2',
)
const deletePlant = db.query<unknown, [number, number]>('delete from plants where user_id = ?1 and id = ?2')

const toPlant = ({ name, tag }: Omit<Plant, 'id'>) => (tag === null ? { name } : { name, tag })
const toListed = (plant: Plant) => ({ id: plant.id, ...toPlant(plant) })

const PlantId = t.Object({ id: t.Numeric({ multipleOf: 1 }) })
const PlantBody = t.Object({ name: t.String(), tag: t.Optional(t.String()) })
const Include = t.Object({ include: t.Optional(t.Literal('id')) })
const List = t.Composite([
  Include,
  t.Object({
    limit: t.Optional(t.Numeric({ minimum: 0, maximum: LIMIT_MAX, multipleOf: 1 })),
    after: t.Optional(t.Numeric({ multipleOf: 1 })),
  }),
])

const app = new Elysia()
  .onError(({ code, error, status }) => {
    if (code === 'PARSE')
      return status(400, {
        error: 40001,
        message: 'The body must be JSON in UTF-8 without a BOM, nested at most 64 levels deep.',
      })
    if (code === 'VALIDATION') return status(400, INVALID[error.type])
    if (code === 'NOT_FOUND')
      return status(404, { error: 40401, message: 'There is nothing at this path: check how it is written.' })
  })
  .use(bearer())
  .resolve(({ bearer, set, status }) => {
    const hash = new Bun.CryptoHasher('sha256').update(bearer ?? '').digest()
    const caller = findCaller.get(hash, Date.now())
    if (caller !== null) return { caller }
    set.headers['www-authenticate'] = `Bearer realm="plantstore"${bearer ? ', error="invalid_token"' : ''}`
    return bearer
      ? status(401, { error: 40102, message: 'The token is not valid (any more): ask the operator for a new one.' })
      : status(401, {
          error: 40101,
          message: 'This needs a token: send the header Authorization: Bearer <ACCESS_TOKEN>.',
        })
  })
  .get(
    '/plants',
    ({ caller, query }) =>
      listPlants
        .all(caller.userId, query.after ?? Number.MIN_SAFE_INTEGER, query.limit ?? LIMIT_MAX)
        .map(query.include === 'id' ? toListed : toPlant),
    { query: List },
  )
  .get(
    '/plants/:id',
    ({ caller, params, query, status }) => {
      const plant = getPlant.get(caller.userId, params.id)
      if (plant === null) return status(404, NOT_FOUND)
      return query.include === 'id' ? toListed(plant) : toPlant(plant)
    },
    { params: PlantId, query: Include },
  )
  .get('/token', ({ caller: { user, scope, expiresAtMs } }) =>
    expiresAtMs === null ? { user, scope } : { user, scope, expires: new Date(expiresAtMs).toISOString() },
  )
  .onBeforeHandle(({ caller, set, status }) => {
    if (caller.scope === 'write') return
    set.headers['www-authenticate'] = 'Bearer realm="plantstore", error="insufficient_scope", scope="write"'
    return status(403, { error: 40301, message: 'This token may only read: use one with the scope write.' })
  })
  .post(
    '/plants',
    ({ caller, body: { id, name, tag = null }, status }) => {
      const { changes } = insertPlant.run(caller.userId, id, name, tag)
      if (changes === 0) return status(409, EXISTS)
      return toPlant({ name, tag })
    },
    { body: t.Composite([t.Object({ id: t.Integer() }), PlantBody]) },
  )
  .put(
    '/plants/:id',
    ({ caller, params: { id }, body: { name, tag = null }, status }) => {
      const { changes } = insertPlant.run(caller.userId, id, name, tag)
      if (changes === 0) updatePlant.run(caller.userId, id, name, tag)
      return status(changes === 0 ? 200 : 201, toPlant({ name, tag }))
    },
    { params: PlantId, body: PlantBody },
  )
  .delete(
    '/plants/:id',
    ({ caller, params, status }) => {
      const { changes } = deletePlant.run(caller.userId, params.id)
      return changes === 0 ? status(404, NOT_FOUND) : status(204)
    },
    { params: PlantId },
  )
  .listen({ hostname: '127.0.0.1', port: 0 })

console.log(app.server?.port)
