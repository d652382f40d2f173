/**
 * Plants with Fastify on Node and `pg`. Started as `node fastify.js URL`; prints its port. It is JavaScript because
 * Node 20 runs no TypeScript.
 */
import { createHash } from 'node:crypto'
import Fastify from 'fastify'
import pg from 'pg'

const LIMIT_MAX = 2147483647
/** As many connections as the service has. */
const CONNECTIONS = 10

const pool = new pg.Pool({ connectionString: process.argv[2], max: CONNECTIONS })

// Statements with a name are prepared, once for each connection.
const findCaller = {
  name: 'find-caller',
  text: `select users.id as "userId", tokens.scope
    from plantstore.tokens join plantstore.users on users.id = tokens.user_id
    where tokens.hash = $1 and tokens.revoked_at_ms is null
      and (tokens.expires_at_ms is null or tokens.expires_at_ms > $2)`,
}
const listPlants = {
  name: 'list-plants',
  text: 'select name, tag from plantstore.plants where user_id = $1 and id > $2 order by id limit $3',
}
const insertPlant = {
  name: 'insert-plant',
  text: 'insert into plantstore.plants (user_id, id, name, tag) values ($1, $2, $3, $4) on conflict do nothing',
}

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

const app = Fastify({ logger: false })
app.decorateRequest('caller', null)

app.addHook('onRequest', async (request, reply) => {
  const [, token = ''] = /^bearer +(\S+)$/i.exec(request.headers.authorization ?? '') ?? []
  const hash = createHash('sha256').update(token).digest()
  const { rows } = await pool.query({ ...findCaller, values: [hash, Date.now()] })
  const [caller] = rows
  if (caller === undefined) {
    reply.header('www-authenticate', 'Bearer realm="plantstore", error="invalid_token"')
    return reply.code(401).send({ error: 40102, message: 'The token is not valid.' })
  }
  request.caller = caller
})

app.get('/plants', { schema: listSchema }, async (request) => {
  const { limit, after } = request.query
  const { rows } = await pool.query({ ...listPlants, values: [request.caller.userId, after, limit] })
  return rows.map(toPlant)
})

app.post('/plants', { schema: createSchema }, async (request, reply) => {
  if (request.caller.scope !== 'write') {
    return reply.code(403).send({ error: 40301, message: 'The token may only read.' })
  }
  const { id, name, tag } = request.body
  const { rowCount } = await pool.query({ ...insertPlant, values: [request.caller.userId, id, name, tag ?? null] })
  if (rowCount === 0) return reply.code(409).send({ error: 40901, message: 'There is a plant with this id already.' })
  return { name, tag }
})

await app.listen({ host: '127.0.0.1', port: 0 })
console.log(app.server.address().port)
