/**
 * Plants with Hono on Bun and `bun:sqlite`. Started as `bun hono.js DATABASE`; prints its port. It is JavaScript so that
 * the types of the project can be checked where the benchmark's dependencies are not installed.
 */
import { Database } from 'bun:sqlite'
import { Hono } from 'hono'
import { bearerAuth } from 'hono/bearer-auth'
import { validator } from 'hono/validator'

const LIMIT_MAX = 2147483647

const db = new Database(process.argv[2], { readwrite: true })
db.run('pragma journal_mode = wal')
db.run('pragma synchronous = full')
db.run('pragma foreign_keys = on')

const findCaller = db.query(
  `select users.id as userId, tokens.scope
   from tokens join users on users.id = tokens.user_id
   where tokens.hash = ?1 and tokens.revoked_at_ms is null
     and (tokens.expires_at_ms is null or tokens.expires_at_ms > ?2)`,
)
const listPlants = db.query('select name, tag from plants where user_id = ?1 and id > ?2 order by id limit ?3')
const insertPlant = db.query(
  'insert into plants (user_id, id, name, tag) values (?1, ?2, ?3, ?4) on conflict do nothing',
)
const deletePlant = db.query('delete from plants where user_id = ?1 and id = ?2')

const toPlant = ({ name, tag }) => (tag === null ? { name } : { name, tag })

const authenticate = bearerAuth({
  realm: 'plantstore',
  verifyToken(token, context) {
    const hash = new Bun.CryptoHasher('sha256').update(token).digest()
    const caller = findCaller.get(hash, Date.now())
    context.set('caller', caller)
    return caller !== null
  },
})

async function requireWrite(context, next) {
  if (context.get('caller').scope !== 'write') {
    return context.json({ error: 40301, message: 'The token may only read.' }, 403)
  }
  await next()
}

const query = validator('query', ({ limit, after }, context) => {
  const page = {
    limit: limit === undefined ? LIMIT_MAX : Number(limit),
    after: after === undefined ? Number.MIN_SAFE_INTEGER : Number(after),
  }
  if (Number.isInteger(page.limit) && page.limit >= 0 && Number.isInteger(page.after)) return page
  return context.json({ error: 40003, message: '`limit` and `after` must be whole numbers.' }, 400)
})

const newPlant = validator('json', ({ id, name, tag }, context) => {
  const isValid = Number.isInteger(id) && typeof name === 'string' && (tag === undefined || typeof tag === 'string')
  return isValid ? { id, name, tag } : context.json({ error: 40002, message: 'This is not a plant.' }, 400)
})

const app = new Hono()
app.use('/plants/*', authenticate)

app.get('/plants', query, (context) => {
  const { limit, after } = context.req.valid('query')
  return context.json(listPlants.all(context.get('caller').userId, after, limit).map(toPlant))
})

app.post('/plants', requireWrite, newPlant, (context) => {
  const { id, name, tag } = context.req.valid('json')
  const { changes } = insertPlant.run(context.get('caller').userId, id, name, tag ?? null)
  if (changes === 0) return context.json({ error: 40901, message: 'There is a plant with this id already.' }, 409)
  return context.json({ name, tag })
})

app.delete('/plants/:id', requireWrite, (context) => {
  const { changes } = deletePlant.run(context.get('caller').userId, Number(context.req.param('id')))
  if (changes === 0) return context.json({ error: 40402, message: 'There is no plant with this id.' }, 404)
  return context.body(null, 204)
})

const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: app.fetch })
console.log(server.port)
