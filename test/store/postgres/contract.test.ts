import { POSTGRES_STORES } from '../../support/stores.ts'
import { quotaProperty } from '../contract/quota.ts'
import { storeContract } from '../contract/store.ts'

storeContract(POSTGRES_STORES)
quotaProperty(POSTGRES_STORES)
