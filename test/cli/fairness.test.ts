import { expect, test } from 'bun:test'
import { addPlants } from '../support/many-plants.ts'
import { serveDatabase } from './support/database.ts'

const PLANTS = 200_000
const READERS = 3
const PROBES = 5

test('a server that sends long lists answers other requests in between', async () => {
  await using service = await serveDatabase()
  const { server, token, database } = service
  addPlants(database, PLANTS)
  const order: string[] = []

  const lists = Array.from({ length: READERS }, async () => {
    const plants = JSON.parse(await (await server.request('GET', '/plants', { token })).text())
    order.push('list')
    return plants.length
  })
  const probes = Array.from({ length: PROBES }, async () => {
    const { status } = await server.request('GET', '/healthz')
    order.push('probe')
    return status
  })

  expect(await Promise.all(probes)).toEqual(Array(PROBES).fill(200))
  expect(await Promise.all(lists)).toEqual(Array(READERS).fill(PLANTS))
  expect(order.slice(0, PROBES)).toEqual(Array(PROBES).fill('probe'))
})
