import { POSTGRES_STORES } from '../../support/stores.ts'
import { storeContract } from '../contract/store.ts'

storeContract(POSTGRES_STORES)
