/**
 * Plants with Fastify on Node and `better-sqlite3`. Started as `node fastify.js DATABASE`; prints its port. It is
 * JavaScript because Node 20 runs no TypeScript.
 */
import { createHash } from 'node:crypto'
import Database from 'better-sqlite3'
import Fastify from 'fastify'

const LIMIT_MAX = 2147483647

const db = new Database(process.argv[2])
db.pragma('journal_mode = wal')
db.pragma('synchronous = full')
db.pragma('foreign_keys = on')

const findCaller = db.prepare(
  `select users.id as userId, tokens.scope
   from tokens join users on users.id = tokens.user_id
   where tokens.hash = ? and tokens.revoked_at_ms is null
     and (tokens.expires_at_ms is null or tokens.expires_at_ms > ?)`,
)
const listPlants = db.prepare('select name, tag from plants where user_id = ? and id > ? order by id limit ?')
const insertPlant = db.prepare('insert into plants (user_id, id, name, tag) values (?, ?, ?, ?) on conflict do nothing')
const deletePlant = db.prepare('delete from plants where user_id = ? and id = ?')

const toPlant = ({ name, tag }) => (tag === null ? { name } : { name, tag })

const plant = {
  type: 'object',
  required: ['name'],
  properties: { name: { type: 'string' }, tag: { type: 'string' } },
}
const listSchema = {
  querystring: {
    type: 'object',
    properties: {
      limit: { type: 'integer', minimum: 0, maximum: LIMIT_MAX, default: LIMIT_MAX },
      after: { type: 'integer', default: Number.MIN_SAFE_INTEGER },
    },
  },
  response: { 200: { type: 'array', items: plant } },
}
const createSchema = {
  body: { ...plant, required: ['id', 'name'], properties: { id: { type: 'integer' }, ...plant.properties } },
  response: { 200: plant },
}
const deleteSchema = {
  params: { type: 'object', required: ['id'], properties: { id: { type: 'integer' } } },
}

const app = Fastify({ logger: false })
app.decorateRequest('caller', null)

app.addHook('onRequest', async (request, reply) => {
  const [, token = ''] = /^bearer +(\S+)$/i.exec(request.headers.authorization ?? '') ?? []
  const caller = findCaller.get(createHash('sha256').update(token).digest(), Date.now())
  if (caller === undefined) {
    reply.header('www-authenticate', 'Bearer realm="plantstore", error="invalid_token"')
    return reply.code(401).send({ error: 40102, message: 'The token is not valid.' })
  }
  request.caller = caller
})

async function requireWrite(request, reply) {
  if (request.caller.scope !== 'write') {
    return reply.code(403).send({ error: 40301, message: 'The token may only read.' })
  }
}

app.get('/plants', { schema: listSchema }, async (request) => {
  const { limit, after } = request.query
  return listPlants.all(request.caller.userId, after, limit).map(toPlant)
})

app.post('/plants', { schema: createSchema, preValidation: requireWrite }, async (request, reply) => {
  const { id, name, tag } = request.body
  const { changes } = insertPlant.run(request.caller.userId, id, name, tag ?? null)
  if (changes === 0) return reply.code(409).send({ error: 40901, message: 'There is a plant with this id already.' })
  return { name, tag }
})

app.delete('/plants/:id', { schema: deleteSchema, preValidation: requireWrite }, async (request, reply) => {
  const { changes } = deletePlant.run(request.caller.userId, request.params.id)
  if (changes === 0) return reply.code(404).send({ error: 40402, message: 'There is no plant with this id.' })
  return reply.code(204).send()
})

await app.listen({ host: '127.0.0.1', port: 0 })
console.log(app.server.address().port)
