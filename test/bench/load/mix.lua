-- Nine lists of 20 and a create, again and again, by users in random order. Arguments: the file of the tokens and the
-- first id.
local lists = {}
local headers = {}
local id
local number = 0

function init(arguments)
  math.randomseed(42)
  for token in io.lines(arguments[1]) do
    local authorization = "Bearer " .. token
    lists[#lists + 1] = wrk.format("GET", "/plants?limit=20", { ["Authorization"] = authorization })
    headers[#headers + 1] = { ["Authorization"] = authorization, ["Content-Type"] = "application/json" }
  end
  id = tonumber(arguments[2])
end

function request()
  number = number + 1
  local user = math.random(#lists)
  if number % 10 ~= 0 then return lists[user] end
  id = id + 1
  local body = '{"id":' .. id .. ',"name":"Monstera deliciosa ' .. id .. '","tag":"evergreen"}'
  return wrk.format("POST", "/plants", headers[user], body)
end
