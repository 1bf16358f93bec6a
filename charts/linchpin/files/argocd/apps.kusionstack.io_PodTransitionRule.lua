-- Argo CD's health of a PodTransitionRule: it only records something, so to be there is all there is to it.
return { status = "Healthy", message = "it exists" }
