import { describe } from 'bun:test'
import type { StoreUnderTest } from '../../support/stores.ts'
import { blockContract } from './block.ts'
import { hasOnlyGrownContract } from './has-only-grown.ts'
import { healthContract } from './health.ts'
import { listContract } from './list.ts'
import { plantsContract } from './plants.ts'
import { providerUsersContract } from './provider-users.ts'
import { quotaContract } from './quota.ts'
import { revokeContract } from './revoke.ts'
import { rotateContract } from './rotate.ts'
import { statisticsContract } from './statistics.ts'
import { tokensContract } from './tokens.ts'
import { usersContract } from './users.ts'
import { versionsContract } from './versions.ts'
import { writesAtOnceContract } from './writes-at-once.ts'

/** Tests all that the comments of `Store` say. Each database has its own file, so that they run at once. */
export const storeContract = (stores: readonly StoreUnderTest[]): void =>
  describe.each(stores)('the store, $name', (store) => {
    plantsContract(store)
    listContract(store)
    writesAtOnceContract(store)
    quotaContract(store)
    tokensContract(store)
    revokeContract(store)
    rotateContract(store)
    usersContract(store)
    blockContract(store)
    providerUsersContract(store)
    healthContract(store)
    versionsContract(store)
    hasOnlyGrownContract(store)
    statisticsContract(store)
  })
