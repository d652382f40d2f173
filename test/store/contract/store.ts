import { describe } from 'bun:test'
import { STORES } from '../support/stores.ts'
import { blockContract } from './contract/block.ts'
import { hasOnlyGrownContract } from './contract/has-only-grown.ts'
import { healthContract } from './contract/health.ts'
import { listContract } from './contract/list.ts'
import { plantsContract } from './contract/plants.ts'
import { quotaContract } from './contract/quota.ts'
import { revokeContract } from './contract/revoke.ts'
import { rotateContract } from './contract/rotate.ts'
import { statisticsContract } from './contract/statistics.ts'
import { tokensContract } from './contract/tokens.ts'
import { usersContract } from './contract/users.ts'
import { versionsContract } from './contract/versions.ts'
import { writesAtOnceContract } from './contract/writes-at-once.ts'

describe.each(STORES)('the store, $name', (store) => {
  plantsContract(store)
  listContract(store)
  writesAtOnceContract(store)
  quotaContract(store)
  tokensContract(store)
  revokeContract(store)
  rotateContract(store)
  usersContract(store)
  blockContract(store)
  healthContract(store)
  versionsContract(store)
  hasOnlyGrownContract(store)
  statisticsContract(store)
})
