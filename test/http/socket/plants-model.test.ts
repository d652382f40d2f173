import { describe, expect, test } from 'bun:test'
import { EXECUTABLE } from '../../support/executable.ts'
import { expectProperty } from '../../support/properties.ts'
import { ModelRun } from '../support/model-run.ts'
import { anySteps } from '../support/model-steps.ts'
import { startService } from '../support/service.ts'
import { STORES_ON_SOCKETS } from '../support/transports.ts'

const QUOTA_PLANTS = 4
/** The executable runs the same source, but shows what the tests change in its store only after some time. */
const RUNS = EXECUTABLE === undefined ? 0.4 : 0.1

describe.concurrent.each(STORES_ON_SOCKETS)('anything that clients and administrators do, $name', (transport) => {
  test('is answered as by the model, and so is every read with every token after every step', async () => {
    await using service = await startService(transport, { quotaPlants: QUOTA_PLANTS })
    const other = await service.reopen({ quotaPlants: undefined })
    let run = 1000

    await expectProperty(
      `model, ${transport.name}`,
      anySteps,
      async (steps) => {
        const options = {
          prefix: `run${run++}.`,
          quotaPlants: QUOTA_PLANTS,
          seenWithinMs: transport.othersSeenWithinMs,
        }
        const model = new ModelRun(service, other, options)
        await model.begin()
        for (const step of steps) await model.take(step)
      },
      RUNS,
    )
    expect([await other.checkReady(), await other.checkIntegrity()]).toEqual([undefined, []])
  })
})
