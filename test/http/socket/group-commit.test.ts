import { describe, expect, test } from 'bun:test'
import { countCommits } from '../../support/commits.ts'
import { startService } from '../support/service.ts'
import { SOCKET_TRANSPORTS } from '../support/transports.ts'

const MANY = 100

describe.each(SOCKET_TRANSPORTS)('writes, $name', (transport) => {
  test('of many clients at once are committed in fewer transactions, each with an answer of its own', async () => {
    await using service = await startService(transport)
    await service.create({ id: 0, name: 'Fern' })
    await service.create({ id: 1, name: 'Ivy' })
    const before = countCommits(service.database)

    const answers = await Promise.all([
      ...Array.from({ length: MANY }, (_, index) => service.create({ id: index + 1, name: 'Fern' })),
      service.delete(0),
      service.delete(5000),
    ])

    expect(answers.map(({ status }) => status)).toEqual([409, ...Array(MANY - 1).fill(200), 204, 404])
    expect(answers[0]?.body.error).toBe(40901)
    const commits = countCommits(service.database) - before
    expect(commits).toBeGreaterThan(0)
    expect(commits).toBeLessThan(MANY)
    expect(await service.names()).toEqual(['Ivy', ...Array(MANY - 1).fill('Fern')])
  })

  test('that come one after the other are committed one by one', async () => {
    await using service = await startService(transport)
    await service.create({ id: 0, name: 'Fern' })
    const before = countCommits(service.database)

    for (let id = 1; id <= 10; id++) await service.create({ id, name: 'Fern' })

    expect(countCommits(service.database) - before).toBeGreaterThanOrEqual(10)
  })
})
