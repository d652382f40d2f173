import { AppError } from '../../../domain/error.ts'
import type { StoreObserver } from '../../../domain/statistics.ts'
import type { UserId } from '../../../domain/token.ts'
import type { PlantWrite, WriteKind } from './group-statements.ts'
import { type Step, settle } from './waiting-steps.ts'
import type { Writer } from './writer.ts'

/** The writer of each kind, and the ways to explain and count refusals. */
export interface GroupOptions {
  readonly writers: Readonly<Record<WriteKind, Writer>>
  /** Which of these users exist. */
  readonly existingUsers: (users: readonly UserId[]) => Promise<ReadonlySet<UserId>>
  readonly observer: StoreObserver | undefined
}

/** Writes a group and gives each step its result. */
export async function writeGroup(kind: WriteKind, group: readonly Step[], options: GroupOptions): Promise<void> {
  const { writers, existingUsers, observer } = options
  const startMs = performance.now()
  try {
    const refused = new Set(await writers[kind].write(group.flatMap(({ plant }) => plant ?? [])))
    observer?.recordGroup(countWrites(group), performance.now() - startMs)
    const errorOf = kind === 'create' ? await explainCreates([...refused], existingUsers) : notFound
    for (const step of group) {
      const { plant } = step
      settle(step, plant !== undefined && refused.has(plant) ? errorOf(plant) : undefined)
    }
  } catch (error) {
    const isLocked = error instanceof AppError && error.kind === 'store_busy'
    for (const step of group) {
      if (isLocked) refuseLocked(step, error, observer)
      else settle(step, error)
    }
  }
}

const notFound = () => new AppError('plant_not_found')

/** Says why each create was refused. What was written stays written, even if the users cannot be read. */
async function explainCreates(
  refused: readonly PlantWrite[],
  existingUsers: GroupOptions['existingUsers'],
): Promise<(plant: PlantWrite) => unknown> {
  try {
    const users = new Set(refused.map(({ user }) => user))
    const existing = users.size === 0 ? users : await existingUsers([...users])
    return ({ user }) => new AppError(existing.has(user) ? 'plant_exists' : 'token_invalid')
  } catch (error) {
    return () => error
  }
}

/** Refuses writes that waited too long for other transactions. */
export function refuseLocked(step: Step, error: AppError, observer: StoreObserver | undefined): void {
  for (const _ of step.waiters) observer?.recordRefusal('locked')
  settle(step, error)
}

/** The number of writes that these steps answer. */
export const countWrites = (steps: readonly Step[]): number =>
  steps.reduce((sum, { waiters }) => sum + waiters.length, 0)
