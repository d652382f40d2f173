import { SQLITE_STORES } from '../../support/stores.ts'
import { quotaProperty } from '../contract/quota.ts'
import { storeContract } from '../contract/store.ts'

storeContract(SQLITE_STORES)
// As a server writes.
quotaProperty(SQLITE_STORES.slice(-1))
