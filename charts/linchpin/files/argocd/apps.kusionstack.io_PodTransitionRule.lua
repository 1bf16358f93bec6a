-- Argo CD's health of a PodTransitionRule: it only says what pods are judged by, so to be there is all there is to it.
return { status = "Healthy", message = "it exists" }
