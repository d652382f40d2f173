import { describe, expect, test } from 'bun:test'
import { countPages, createMany } from './support/long-lists.ts'
import { type Service, startService } from './support/service.ts'
import { IN_PROCESS } from './support/transports.ts'

/** The status of a list, or `cut`. */
const outcome = async (service: Service, query = '') =>
  service.list(query).then(
    ({ status }) => status,
    () => 'cut',
  )

describe.each(IN_PROCESS)('the limit of requests in flight, $name', (transport) => {
  test.each([
    [1, 500],
    [3, 'cut'],
  ])('takes a request again when a list has failed at page %d', async (failAt, failed) => {
    const { pages, overrideStore } = countPages({ failAt })
    await using service = await startService(transport, { maxInFlight: 1, overrideStore })
    await createMany(service.store)

    expect(await outcome(service)).toBe(failed)
    expect(pages()).toBe(failAt)
    expect([await outcome(service, '?limit=1'), await outcome(service)]).toEqual([200, 200])
  })
})
