-- Lists by users in random order. Arguments: the file of their tokens and the path.
local requests = {}

function init(arguments)
  math.randomseed(42)
  for token in io.lines(arguments[1]) do
    requests[#requests + 1] = wrk.format("GET", arguments[2], { ["Authorization"] = "Bearer " .. token })
  end
end

function request()
  return requests[math.random(#requests)]
end
