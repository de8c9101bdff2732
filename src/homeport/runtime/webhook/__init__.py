"""Defaulting, validation and conversion of our kinds: in process on the embedded server, by webhook on any other.

hook            what is registered: pure functions by kind
embedded        plugs it into the embedded server
review          AdmissionReview and ConversionReview: question in, answer out
diff            before and after as a JSON patch
configuration   the objects that tell an API server whom to ask
authority       the CA in a Secret, shared by all replicas
inject          puts the CA into those objects
server          all of it together, with certificates that renew themselves
wire            HTTPS
"""
