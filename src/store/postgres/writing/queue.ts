import type { PlantValues } from '../../../domain/plant.ts'
import type { StoreObserver } from '../../../domain/store.ts'
import { type GroupOutcome, queueGroups } from '../../group-queue.ts'
import { type PlantWrite, REFUSALS, type WriteKind } from './statements.ts'
import type { WriteGroup } from './writer.ts'

interface QueueOptions {
  readonly writers: Readonly<Record<WriteKind, WriteGroup>>
  readonly observer: StoreObserver | undefined
  /** Throws an `AppError` while no write may be asked for. */
  readonly requireOpen: () => void
}

/** All writes of plants pass through this queue. One statement writes a group of creates, and another one a group of deletes. */
export function queueWrites({ writers, observer, requireOpen }: QueueOptions) {
  const performer =
    (kind: WriteKind) =>
    async (plants: readonly PlantWrite[]): Promise<GroupOutcome> => {
      const startMs = performance.now()
      const refused = new Map(await writers[kind](plants))
      observer?.recordGroup(plants.length, performance.now() - startMs)
      const keys = new Set<string>()
      for (const [index, key] of plants.map(keyOf).entries()) {
        // Of several creates only the first can store the plant, and of several deletes only the first can find it.
        if (keys.has(key) && !refused.has(index)) refused.set(index, REFUSALS[kind])
        keys.add(key)
      }
      return { refused }
    }
  const { write, ...queue } = queueGroups({
    perform: { create: performer('create'), delete: performer('delete') },
    observer,
  })
  const ask = async (kind: WriteKind, plant: PlantWrite): Promise<void> => {
    requireOpen()
    await write({
      lane: kind,
      content: plant,
      textLength: plant.values.reduce((sum, value) => sum + (value?.length ?? 0), 0),
      key: keyOf(plant),
      // After a delete with values, another delete may still find the plant.
      isLastOfKey: kind === 'delete' && plant.values.length > 0,
    })
  }
  return {
    ...queue,
    create: (plant: PlantWrite<PlantValues>) => ask('create', plant),
    delete: (plant: PlantWrite) => ask('delete', plant),
  }
}

const keyOf = ({ user, id }: PlantWrite): string => `${user} ${id}`
