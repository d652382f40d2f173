import type { AppError } from '../../../domain/error.ts'
import type { OpenOptions } from '../../engine.ts'
import { queueGroups } from '../../group-queue.ts'
import { type ConnectionOptions, createClient } from '../driver.ts'
import { keyOf, type PlantWrite, type WriteKind } from './statements.ts'
import { openWriter } from './writer.ts'

/**
 * All writes of plants pass through this queue. One statement writes a group of creates, and another one a group of deletes, each
 * on a connection of its own. `requireOpen` throws an `AppError`.
 */
export function queueWrites(
  connection: ConnectionOptions,
  { quotaPlants, observer }: OpenOptions,
  requireOpen: () => void,
) {
  const [creates, deletes] = [createClient(connection, 1), createClient(connection, 1)]
  const queue = queueGroups({
    perform: {
      create: openWriter('create', creates, { quotaPlants, observer }),
      delete: openWriter('delete', deletes, { observer }),
    },
    observer,
  })
  return {
    load: queue.load,
    /** Creates or deletes a plant durably. */
    async writePlant<Kind extends WriteKind>(kind: Kind, plant: PlantWrite<Kind>): Promise<void> {
      requireOpen()
      await queue.write({
        lane: kind,
        content: plant,
        textLength: plant.values.reduce((sum, value) => sum + (value?.length ?? 0), 0),
        key: keyOf(plant),
        // After a delete with values, another delete may still find the plant.
        isLastOfKey: kind === 'delete' && plant.values.length > 0,
      })
    },
    /** Refuses all writes from now on, and closes the connections after the groups that are under way. */
    async close(refusal: AppError): Promise<void> {
      await queue.refuse(refusal)
      await Promise.all([creates.close(), deletes.close()])
    },
  }
}
